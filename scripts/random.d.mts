/** 32 random bits a call, the same for the same seed. */
export function bitsOf(seed: number): () => number
/** Numbers from 0 to below 1, the same for the same seed. */
export function randomOf(seed: number): () => number
