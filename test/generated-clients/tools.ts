import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'

/** Generators of clients that the tests run, by exact version, beside openapi-typescript (package.json). */
export const NPM_PACKAGES = ['@hey-api/openapi-ts@0.99.0', 'typescript@5.9.3']
/** With the type checker for what it generates, and with what verifies tokens in `test/jwt/`. */
export const PYTHON_PACKAGES = [
  'openapi-python-client==0.29.1',
  'mypy==2.4.1',
  'PyJWT==2.15.1',
  'cryptography==50.0.2',
]

const cache = process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache')

/** Outside the repository, so that all clones share them. */
export const NPM_FOLDER = path.join(cache, 'gatehouse', 'hey-api-0.99.0')
export const PYTHON_FOLDER = path.join(cache, 'gatehouse', 'openapi-python-client-0.29.1-and-pyjwt')

/** Is written when everything is installed. */
export const completeIn = (folder: string): string => path.join(folder, 'complete')

/** The `skip` option of tests with a generator: the reason if it is missing, otherwise false. */
const without = (name: string, folder: string): string | false =>
  existsSync(completeIn(folder)) ? false : `${name} is missing: npm run generators installs it`
export const WITHOUT_HEY_API = without('@hey-api/openapi-ts', NPM_FOLDER)
export const WITHOUT_PYTHON = without('The environment of Python', PYTHON_FOLDER)
