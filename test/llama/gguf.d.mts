/** Types of weights that are made. */
export type TensorType = 'Q4_0' | 'Q8_0' | 'TQ2_0' | 'Q4_K' | 'Q5_K' | 'Q6_K' | 'F16' | 'F32'

/** The shape of a model with random weights; with `experts` a mixture of experts. */
export interface ModelSpec {
  readonly name?: string
  /** Default `llama`. */
  readonly architecture?: 'llama' | 'qwen2' | 't5'
  readonly layers: number
  readonly width: number
  readonly feedForward: number
  readonly heads: number
  readonly kvHeads: number
  readonly vocabulary: number
  readonly context: number
  readonly experts?: number
  readonly expertsUsed?: number
  /** Default `Q4_0`. */
  readonly weights?: TensorType
  /** Types of weights of a layer by name, such as `ffn_down`, where it is another one. */
  readonly types?: Readonly<Record<string, TensorType>>
  /** Default 1. */
  readonly seed?: number
}

export interface ModelTensor {
  readonly name: string
  readonly type: TensorType
  /** ggml's order: the first number counts the elements of a row. */
  readonly shape: readonly number[]
  /** In bytes from the start of the file. */
  readonly offset: number
  readonly size: number
}

export interface Model {
  readonly path: string
  readonly spec: ModelSpec
  readonly tensors: readonly ModelTensor[]
  readonly parameters: number
  readonly size: number
}

export type Preset = 'tinyDense' | 'tinyMoe' | 'tinyQwen2' | 'tinyT5' | 'exact' | 'big'

export const presets: Readonly<Record<Preset, ModelSpec>>
export const layoutOf: (spec: ModelSpec) => Omit<Model, 'path' | 'spec'> & { readonly head: Uint8Array }
export const writeModel: (preset: Preset | ModelSpec, path: string) => Promise<Model>
export const cachedModel: (preset: Preset | ModelSpec, folder?: string) => Promise<Model>
