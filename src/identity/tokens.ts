import { hash } from 'node:crypto'

/** The stored form of a token, so that a copy of the database signs no one in. 256 random bits need no salt. */
export const tokenHash = (token: string): Buffer => hash('sha256', token, 'buffer')

/** The form of every token of ours: 32 bytes in base64url. */
export const isTokenShaped = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text)
