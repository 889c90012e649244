import { apple } from './apple.ts'
import { discord } from './discord.ts'
import { facebook } from './facebook.ts'
import { github } from './github.ts'
import { gitlab } from './gitlab.ts'
import { google } from './google.ts'
import { microsoft } from './microsoft.ts'
import type { Provider } from './provider.ts'

/** Built-in providers, by the name that the configuration gives them. */
export const PROVIDERS: Readonly<Record<string, Provider>> = {
  apple,
  discord,
  facebook,
  github,
  gitlab,
  google,
  microsoft,
}
