export { count, duration, percent, plural, size, threeDigits } from '../lib/cli.ts'
