import { Mark } from '../../controls.js'
import { html } from '../../html.js'

/** @typedef {{ id: string, name: string, email: string, emailVerified: boolean, role: string, banned: boolean, twoFactorEnabled: boolean, isAnonymous: boolean, createdAt: string }} User */

/** @param {{ user: Pick<User, 'banned' | 'twoFactorEnabled' | 'isAnonymous'> }} props */
export const State = ({ user: { banned, twoFactorEnabled, isAnonymous } }) => html`<span class="marks">
  ${banned && html`<${Mark} tone="bad">banned<//>`}
  ${twoFactorEnabled && html`<${Mark} tone="good">two-factor<//>`}
  ${isAnonymous && html`<${Mark}>anonymous<//>`}
</span>`
