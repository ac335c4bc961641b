/** A way to run ggml: a row of the table in docs/reference/compatibility.md, which says what is recorded there. */
export type Way =
  | 'program that contains ggml'
  | 'program that contains ggml, on arm64'
  | 'stripped program that contains ggml'
  | 'program without shared libraries'
  | 'library with a hidden ggml'
  | 'program of another processor'
  | 'program with more rights'
  | 'program that others start'
  | 'process that runs already'
  | 'macOS, Windows'

/** For a message: where to read what such a program's recording has, and what to use instead. */
export const rowOf = (way: Way): string => `docs/reference/compatibility.md: ${way}`
