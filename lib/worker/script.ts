import { serveConversions } from './serve.ts'

serveConversions()
