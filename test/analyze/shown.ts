/** What `stats` shows where its options are not what is tested. */
export const SHOWN = {
  by: ['role', 'op', 'phase'],
  top: 20,
  sort: 'wall',
  calls: false,
  experts: false,
  isPublic: false,
} as const
