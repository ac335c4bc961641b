/** The temporary folder, of which LD_PRELOAD takes paths: for libraries that tests preload. */
export declare function plainTmpdir(): string

/**
 * The path of a folder for what tests and scripts keep from run to run: in the temporary folder, for each user another. Libraries in it can be
 * preloaded.
 */
export declare function cacheFolder(name: string): string

/** Makes a folder that all users may read, whatever the umask is: tests run programs as other users, too. */
export declare function makeForAll(folder: string): void

/** A path of a folder that LD_PRELOAD takes: its own, else that of a link to it. */
export declare function plainPath(folder: string): string
