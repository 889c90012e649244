import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultConfig } from '#kernel/config/config.ts'
import { PROVIDERS } from './index.ts'
import type { Claims } from './provider.ts'

type Documented = {
  /** Of the ID token, or of the endpoint that describes the user. */
  readonly claims: Claims
  readonly sent?: Claims
  /** Of further endpoints, by URL. */
  readonly answers?: Readonly<Record<string, unknown>>
  readonly profile: object
}

/** Answers as the documents of the providers show them. */
const ANSWERS: Readonly<Record<string, readonly Documented[]>> = {
  google: [
    {
      claims: {
        sub: '10769150350006150715113082367',
        email: 'jsmith@example.com',
        email_verified: true,
        name: 'J Smith',
        picture: 'https://lh3.googleusercontent.com/a/photo.jpg',
      },
      profile: {
        id: '10769150350006150715113082367',
        email: 'jsmith@example.com',
        emailVerified: true,
        name: 'J Smith',
        image: 'https://lh3.googleusercontent.com/a/photo.jpg',
      },
    },
  ],
  github: [
    {
      claims: {
        id: 1,
        login: 'octocat',
        name: null,
        email: 'public@example.com',
        avatar_url: 'https://github.com/images/error/octocat_happy.gif',
      },
      answers: {
        'https://api.github.com/user/emails': [
          { email: 'other@example.com', verified: true, primary: false, visibility: null },
          { email: 'octocat@example.com', verified: true, primary: true, visibility: 'public' },
        ],
      },
      profile: {
        id: 1,
        email: 'octocat@example.com',
        emailVerified: true,
        name: 'octocat',
        image: 'https://github.com/images/error/octocat_happy.gif',
      },
    },
    {
      claims: { id: 1, login: 'octocat', email: 'public@example.com' },
      answers: {
        'https://api.github.com/user/emails': [
          { email: 'octocat@example.com', verified: false, primary: true },
          { email: 'other@example.com', verified: true, primary: false },
        ],
      },
      profile: { id: 1, email: 'octocat@example.com', emailVerified: false },
    },
  ],
  apple: [
    {
      claims: { sub: '000123.abc.0456', email: 'x@privaterelay.appleid.com', email_verified: 'true' },
      sent: { name: { firstName: 'Ada', lastName: 'Lovelace' }, email: 'forged@example.com' },
      profile: {
        id: '000123.abc.0456',
        email: 'x@privaterelay.appleid.com',
        emailVerified: true,
        name: 'Ada Lovelace',
      },
    },
    {
      claims: { sub: '1', email: 'x@example.com', email_verified: 'false' },
      profile: { emailVerified: false },
    },
  ],
  microsoft: [
    {
      claims: { sub: 'AAAA', oid: '0000', email: 'ceo@example.com', email_verified: true, name: 'Ada' },
      profile: { id: 'AAAA', email: 'ceo@example.com', emailVerified: false, name: 'Ada' },
    },
    {
      claims: { sub: 'AAAA', email: 'ada@example.com', xms_edov: true },
      profile: { email: 'ada@example.com', emailVerified: true },
    },
  ],
  gitlab: [
    {
      claims: {
        sub: '44',
        name: 'Jane Doe',
        email: 'jane@example.com',
        email_verified: true,
        picture: 'https://gitlab.com/a.png',
      },
      profile: {
        id: '44',
        email: 'jane@example.com',
        emailVerified: true,
        name: 'Jane Doe',
        image: 'https://gitlab.com/a.png',
      },
    },
  ],
  facebook: [
    {
      claims: {
        id: '10154321098765432',
        name: 'Ada Lovelace',
        email: 'ada@example.com',
        picture: {
          data: { height: 200, is_silhouette: false, url: 'https://example.com/ada.jpg', width: 200 },
        },
      },
      profile: {
        id: '10154321098765432',
        email: 'ada@example.com',
        emailVerified: false,
        name: 'Ada Lovelace',
        image: 'https://example.com/ada.jpg',
      },
    },
  ],
  discord: [
    {
      claims: {
        id: '80351110224678912',
        username: 'nelly',
        global_name: null,
        avatar: '8342729096ea3675442027381ff50dfe',
        verified: true,
        email: 'nelly@example.com',
      },
      profile: {
        id: '80351110224678912',
        email: 'nelly@example.com',
        emailVerified: true,
        name: 'nelly',
        image: 'https://cdn.discordapp.com/avatars/80351110224678912/8342729096ea3675442027381ff50dfe.png',
      },
    },
    {
      claims: { id: '1', username: 'nelly', avatar: null, verified: false, email: 'nelly@example.com' },
      profile: { emailVerified: false, image: null },
    },
  ],
}

const [settings] = Object.values(
  defaultConfig({ auth: { social: { providers: { any: { client_id: 'gatehouse' } } } } }).auth.social
    .providers,
)

for (const [name, provider] of Object.entries(PROVIDERS)) {
  test(`${name}: an account is read from the documented answers`, async () => {
    const documented = ANSWERS[name] ?? []
    assert.notEqual(documented.length, 0)
    assert.ok(settings)
    for (const { claims, sent = {}, answers = {}, profile } of documented) {
      const get = async (url: string) => answers[url]
      const found = await provider.profile({ claims, sent, settings, get })
      assert.partialDeepStrictEqual(found, profile)
    }
  })

  test(`${name}: an answer without any member verifies no address`, async () => {
    assert.ok(settings)
    const found = await provider.profile({ claims: {}, settings, get: async () => ({}) })
    assert.deepEqual([found.id, found.emailVerified], [undefined, false])
  })
}
