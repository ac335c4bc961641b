export { count, duration, percent, plural, size, threeDigits } from '../lib/index.ts'
