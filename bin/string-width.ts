/**
 * In the built command, this replaces the package string-width, by which yargs lays out its help: all signs in it, which are ours, are one column
 * wide, and one character long.
 */
export default (text: string): number => text.length
