import type { Sessions } from '#identity/sessions.ts'
import type { RouteBook } from '#kernel/http/routes.ts'
import { type App, addFeature, configureSurface } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { createAuthAccess } from './access.ts'
import { accountRoutes } from './account/routes.ts'
import { confirmRoutes } from './confirm/routes.ts'
import { emailRoutes } from './email/routes.ts'
import { AUTH_CODES } from './errors.ts'
import { pageRoutes } from './pages/routes.ts'
import { passwordRoutes } from './password/routes.ts'
import { profileRoutes } from './profile/routes.ts'
import { protect } from './protection.ts'
import { sessionRoutes } from './session/routes.ts'
import { signInRoutes } from './sign-in/routes.ts'
import { signUpRoutes } from './sign-up/routes.ts'

/** The authentication surface, one line a feature. */
export function authSurface(app: App, kernel: Kernel, book: RouteBook, sessions: Sessions): void {
  configureSurface(app, kernel, book, {
    name: 'auth',
    nullIsAbsent: false,
    parse: JSON.parse,
    codes: AUTH_CODES,
    envelope: ({ message, code }) => ({ message, code: code.toUpperCase() }),
  })
  app.decorateRequest('caller', undefined)
  protect(app, kernel)
  const access = createAuthAccess(kernel, sessions)

  addFeature(app, FEATURES.signUp, (app) => signUpRoutes(app, kernel))
  addFeature(app, FEATURES.signIn, (app) => signInRoutes(app, kernel))
  addFeature(app, FEATURES.session, (app) => sessionRoutes(app, kernel, access))
  addFeature(app, FEATURES.email, (app) => emailRoutes(app, kernel, access))
  addFeature(app, FEATURES.password, (app) => passwordRoutes(app, kernel, access))
  addFeature(app, FEATURES.profile, (app) => profileRoutes(app, kernel, access))
  addFeature(app, FEATURES.account, (app) => accountRoutes(app, kernel, access))
  addFeature(app, FEATURES.pages, (app) => {
    pageRoutes(app, kernel)
    confirmRoutes(app, kernel, access)
  })
}

/** Tags of the API reference, one a feature. */
const FEATURES = {
  signUp: { name: 'Sign-up', description: 'New users' },
  signIn: {
    name: 'Sign-in',
    description: 'By email or username; the answer and the cookie carry a session token',
  },
  session: { name: 'Sessions', description: 'The current session, and the others of the same user' },
  email: { name: 'Email', description: 'Verifying and changing the address of a user' },
  password: { name: 'Password', description: 'Changing it, and choosing a new one when it is forgotten' },
  profile: { name: 'Profile', description: 'Name, picture and username; deleting the own account' },
  account: { name: 'Accounts', description: 'The ways in which a user can sign in' },
  pages: { name: 'Pages', description: 'Liveness, and pages that browsers are sent to' },
}
