declare module '*.sql' {
  const text: string
  export default text
}
declare module '*.textproto' {
  const text: string
  export default text
}
