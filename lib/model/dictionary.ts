/** An object in which only its own names are found: names from files may be `constructor`, which any other object has. */
export const dictionary = <T>(entries: Readonly<Record<string, T>>): Readonly<Record<string, T>> =>
  Object.assign(Object.create(null), entries)
