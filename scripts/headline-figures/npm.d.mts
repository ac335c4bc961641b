/** The folder in which a host of npm is installed, once. */
export function installed(name: 'node-llama-cpp' | '@fugood/llama.node'): Promise<string>
