import { open } from '#kernel/http/access.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { Challenge, newChallenge } from './altcha.ts'

export function captchaRoutes(app: App, kernel: Kernel): void {
  if (kernel.config.auth.captcha.provider !== 'altcha') return
  app.route({
    method: 'GET',
    url: '/captcha/challenge',
    config: { access: open },
    schema: {
      operationId: 'createCaptchaChallenge',
      summary: 'A challenge of ALTCHA. Its solution goes into the header X-Captcha-Response, once',
      response: { 200: Challenge },
    },
    handler: () => newChallenge(kernel),
  })
}
