import type { Sessions } from '#identity/sessions.ts'
import type { RouteBook } from '#kernel/http/routes.ts'
import { type App, dressSurface } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { authAccess } from './access.ts'
import { accountRoutes } from './account/routes.ts'
import { emailRoutes } from './email/routes.ts'
import { pageRoutes } from './pages.ts'
import { passwordRoutes } from './password/routes.ts'
import { profileRoutes } from './profile/routes.ts'
import { protect } from './protection.ts'
import { sessionRoutes } from './session/routes.ts'
import { signInRoutes } from './sign-in/routes.ts'
import { signUpRoutes } from './sign-up/routes.ts'

/** The authentication surface: every feature is one line. */
export function authSurface(app: App, kernel: Kernel, book: RouteBook, sessions: Sessions): void {
  dressSurface(app, kernel, book, {
    name: 'auth',
    parse: JSON.parse,
    envelope: ({ message, code }) => ({ message, code: code.toUpperCase() }),
  })
  app.decorateRequest('caller', undefined)
  protect(app, kernel)
  const access = authAccess(kernel, sessions)

  pageRoutes(app)
  signUpRoutes(app, kernel)
  signInRoutes(app, kernel)
  sessionRoutes(app, kernel, access)
  emailRoutes(app, kernel, access)
  passwordRoutes(app, kernel, access)
  profileRoutes(app, kernel, access)
  accountRoutes(app, kernel, access)
}
