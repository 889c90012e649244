def sub(p, *pairs):
    s=open(p).read()
    for a,b in pairs:
        assert a in s, (p,a)
        s=s.replace(a,b,1)
    open(p,'w').write(s)
sub('src/kernel/config/sections/auth-jwt.ts',
("import { choice, duration, flag, section, text } from '../setting.ts'","import { choice, duration, flag, named, section, text } from '../setting.ts'"),
("/** JSON web tokens of","""const templateNameForm = textForm(
  'template name',
  /^[a-z][a-z0-9_-]{0,39}$/,
  'a name of at most 40 lower-case letters, digits, "-" and "_"',
)

/** Claims that say whose token it is, for whom, and until when. */
const OURS = [
  ...['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'sid', 'azp', 'client_id', 'scope', 'cnf', 'act'],
  ...['amr', 'acr', 'auth_time', 'nonce', 'org', 'org_role', 'is_anonymous'],
]

const claimNameForm = textForm(
  'claim name',
  new RegExp(`^(?!(?:${OURS.join('|')})$)[\\\\x21-\\\\x7e]{1,100}$`),
  `at most 100 visible ASCII characters without spaces, and none of ${OURS.join(', ')}`,
)

/** JSON web tokens of"""),
("  rotate_every: duration('Time for which a key signs.', ['90d', '2d', '3650d']),\n","""  rotate_every: duration('Time for which a key signs.', ['90d', '2d', '3650d']),
  templates: named(
    'Tokens for other audiences, which the gateway does not accept: `/token?template=NAME`.',
    templateNameForm,
    section('A token for one audience.', {
      audience: text('`aud` of the token.', {}, audienceForm),
      expires_in: duration('Lifetime of the token. It also ends with its session.', ['5m', '1m', '1d']),
      claims: named(
        'Claims besides those of every token; `role` replaces the roles of the user.',
        claimNameForm,
        text('The value, a text.'),
      ),
    }),
  ),
"""))
sub('src/kernel/config/rules.ts',
("const BUCKET_SETTINGS","""/** The gateway tells its own tokens by their audience. */
const tokenRules = ({ auth: { jwt }, server }: Config): Rule[] =>
  Object.entries(jwt.templates).map(([name, { audience }]) => ({
    settings: [`auth.jwt.templates.${name}.audience`],
    broken: () => audience === (jwt.audience ?? server.public_url),
    says: 'must differ from auth.jwt.audience (default: server.public_url), whose tokens the gateway accepts',
  }))

const BUCKET_SETTINGS"""))
sub('src/auth/errors.ts',("  NOT_WHILE_IMPERSONATING:","  TEMPLATE_NOT_FOUND: [404, 'There is no such template of tokens'],\n  NOT_WHILE_IMPERSONATING:"))
sub('src/auth/jwt/jwt.ts',
("  of(live: LiveSession): Promise<string | undefined>\n","  of(live: LiveSession, template?: string): Promise<string | undefined>\n"),
("    async of(live) {\n","    async of(live, template) {\n      const kind = kindOf(kernel, template)\n"),
("      const { id, expiresAt } = live.session\n      const claims = claimsOf(kernel, live)\n","      const { expiresAt } = live.session\n      const id = `${live.session.id} ${template ?? ''}`\n      const claims = { ...claimsOf(kernel, live), ...kind.claims }\n"),
("now + kernel.config.auth.jwt.expires_in,","now + kind.expiresIn,"),
("/** All that a token may say","""type Kind = { readonly expiresIn: number; readonly claims: Claims }

/** The settings of the default token, or of a template's. */
function kindOf({ config }: Kernel, name: string | undefined): Kind {
  const { expires_in: expiresIn, templates } = config.auth.jwt
  if (name === undefined) return { expiresIn, claims: {} }
  const template = templates[name]
  if (template === undefined) throw fail('TEMPLATE_NOT_FOUND')
  return { expiresIn: template.expires_in, claims: { ...template.claims, aud: template.audience } }
}

/** All that a token may say"""),
("import type { Kernel } from '#kernel/kernel.ts'\n","import type { Kernel } from '#kernel/kernel.ts'\nimport { fail } from '../errors.ts'\n"),
)
sub('src/auth/jwt/routes.ts',
("    config: { access: access.signedIn },\n","    config: { access: access.signedIn, failures: ['TEMPLATE_NOT_FOUND'] },\n"),
("      response: { 200: Type.Object({ token: Type.String() }) },","      querystring: Type.Object({\n        template: Type.Optional(\n          Type.String({ maxLength: 40, description: 'A name in `auth.jwt.templates`: a token for its audience' }),\n        ),\n      }),\n      response: { 200: Type.Object({ token: Type.String() }) },"),
("handler: async ({ method, caller }, reply)","handler: async ({ method, caller, query }, reply)"),
("await tokens.of(caller)\n","await tokens.of(caller, query.template)\n"),
)
sub('docs/guides/jwt.md',
("END_NEVER","") if False else ("A service that you give a token to can use it here until it ends. Give a service that you do not trust that far a token for an audience of its\nown.","""A service that you give a token to can use it here until it ends. Give a service that you do not trust that far a token of a template.

## Templates

A template is a token for one audience, with claims of your choice. The gateway does not accept it.

```yaml
auth:
  jwt:
    templates:
      postgrest:
        audience: https://rest.example.com
        expires_in: 10m
        claims:
          role: authenticated
```

`GET /token?template=postgrest` answers it. `role` may be replaced, and other claims added; those that say whose token it is, for whom and until when
stay. Values are texts."""))
