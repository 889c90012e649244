import { isSigningSecret } from '../../http/outbound/webhook-signature.ts'
import { serviceUrlForm } from '../addresses.ts'
import { choiceForm, type Form, textForm } from '../forms.ts'
import { choice, duration, list, named, section, text } from '../setting.ts'

const HOOK_POINTS = ['sign_up', 'sign_in', 'token'] as const
/** A hook is called before one of these. */
export type HookPoint = (typeof HOOK_POINTS)[number]

const hookNameForm = textForm(
  'hook name',
  /^[a-z][a-z0-9_-]{0,39}$/,
  'a name of at most 40 lower-case letters, digits, "-" and "_"',
)

const signingSecretForm: Form<string> = {
  name: 'signing secret',
  allowed: 'whsec_ and the base64 of 24 to 64 bytes, like whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  parse: (text) => (isSigningSecret(text.trim()) ? text.trim() : undefined),
  write: (value) => value,
}

/** Decision 68. */
export const hooks = named(
  'Signed calls of your own service before a sign-up, a sign-in or a token; it may refuse, or add fields and claims. They run in the order of the settings.',
  hookNameForm,
  section('A hook.', {
    url: text('Address that is called, by POST.', { secret: 'password' }, serviceUrlForm),
    secret: text(
      'Secret that signs the calls, as Standard Webhooks do.',
      { secret: 'all' },
      signingSecretForm,
    ),
    on: list('What it is called before.', choiceForm<string>(HOOK_POINTS)),
    timeout: duration('Time in which it has to answer.', ['3s', '100ms', '10s']),
    on_failure: choice(
      'Effect of a call that fails: `refuse` answers 503, `allow` goes on as if there were no hook.',
      ['refuse', 'allow'],
      { default: 'refuse' },
    ),
  }),
)
