/** The op of an operator's slice: the last word of its name, where it has no argument for it. */
export const opOf = (slice: string): string =>
  `ifnull(extract_arg(${slice}.arg_set_id, 'debug.op'), replace(${slice}.name, rtrim(${slice}.name, replace(${slice}.name, ' ', '')), ''))`

/**
 * The operators of a trace, with their calls, as a table of SQL: only the first operator of a call in a row has its number. Plainer than
 * the views of the package, and for Chrome JSON, too.
 */
export const OPERATORS = `(select id, ts, dur, track_id, name, arg_set_id, nullif(max(call) over (partition by track_id, nth), -1) as call
  from (select *, count(call) over (partition by track_id order by ts, id) as nth
    from (select *, extract_arg(arg_set_id, 'debug.call') as call from slice where category = 'operator')))`
