// openapi-typescript writes types through the compiler's JavaScript API, which TypeScript 7 does not have any more. The copy inside
// ts-morph has it, and brings no second `tsc`.
import { registerHooks } from 'node:module'

const shim = `data:text/javascript,${encodeURIComponent(`
  import { ts } from ${JSON.stringify(import.meta.resolve('@ts-morph/common'))}
  export default ts`)}`

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'typescript' ? { url: shim, shortCircuit: true } : next(specifier, context),
})
