/** Tests, whose JSON modules have no names, have one of their own (jest.config.mjs). */
export { version } from '../package.json'
