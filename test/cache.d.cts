/** The path of a folder for what tests and scripts keep from run to run: in the temporary folder, for each user another. */
export declare function cacheFolder(name: string): string
