import { Type } from 'typebox'
import { domainForm, serviceUrlForm } from '../addresses.ts'
import type { Form } from '../forms.ts'
import { choice, duration, integer, list, section, text } from '../setting.ts'

const scoreForm: Form<number> = {
  name: 'score, 0 to 1',
  allowed: 'a number from 0 to 1, like 0.5',
  parse: (text) => (/^(0(\.\d{1,3})?|1(\.0{1,3})?)$/.test(text.trim()) ? Number(text) : undefined),
  write: (value) => value,
}

export const captcha = section(
  'A captcha for callers without a session, on each route that sends mail or adds users. They send the solution in the header X-Captcha-Response.',
  {
    provider: Type.Optional(
      choice(
        'The kind of captcha. `altcha` is a proof of work that the service itself hands out and checks.',
        ['turnstile', 'hcaptcha', 'recaptcha', 'altcha'],
        { absent: 'no captcha' },
      ),
    ),
    secret: Type.Optional(
      text('Secret key of the provider; altcha needs none.', { absent: 'none', secret: 'all' }),
    ),
    site_key: Type.Optional(
      text('Site key that solutions of hCaptcha must be for.', { absent: 'any of the account' }),
    ),
    min_score: Type.Number({
      description: 'Lowest score of reCAPTCHA v3 that passes.',
      form: scoreForm,
      default: 0.5,
      minimum: 0,
      maximum: 1,
    }),
    allowed_hostnames: list(
      'Host names of pages on which a captcha of a provider may be solved; empty: all that the provider allows.',
      domainForm,
    ),
    expected_action: Type.Optional(
      text('Action that solutions of Turnstile and reCAPTCHA v3 must be for.', { absent: 'any' }),
    ),
    verify_url: Type.Optional(
      text(
        "In place of the provider's own address.",
        { absent: "the provider's", secret: 'password' },
        serviceUrlForm,
      ),
    ),
    altcha: section('The proof of work of ALTCHA.', {
      cost: integer(
        'Iterations of PBKDF2 for each of about 256 tries of the browser.',
        { min: 100, max: 1_000_000 },
        { default: 5_000 },
      ),
      expires_in: duration('Time in which a challenge has to be used.', ['10m', '10s', '1h']),
    }),
  },
)
