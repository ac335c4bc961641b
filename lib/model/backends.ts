/** The backend whose threads compute, and pass the hooks of operators. Where no name is recorded, it is assumed to be this one. */
export const isCpuBackend = (backend: string): boolean => backend === '' || backend.startsWith('CPU')

/** Does another process compute: a server of ggml-rpc? */
export const isRemote = (backend: string): boolean => backend.startsWith('RPC')

/**
 * Does a backend compute on the CPU? Besides {@link isCpuBackend}, these are libraries that ggml passes single nodes to (ggml-blas, ggml-zendnn,
 * ggml-zdnn; ggml-amx until the end of 2024): their graph runs compute, on the thread that calls them. All others are devices, which that thread waits for.
 */
export const isOnHost = (backend: string): boolean => isCpuBackend(backend) || /^(BLAS|ZenDNN|zDNN|AMX)/.test(backend)
