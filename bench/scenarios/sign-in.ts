import { passwordSignIns, passwordSignUps } from '../loads-of-passwords.ts'
import { hashSide } from '../peers/by-hand/sides.ts'
import type { Scenario } from '../scenario.ts'
import { ourSide } from '../sides.ts'

const HASH = 'the hash alone'
const TARGET = { of: 'Gatehouse', against: HASH, atLeast: 0.85 }

export const signIn: Scenario = {
  title: 'sign-in',
  unit: 'requests per second',
  target: TARGET,
  hasLatency: true,
  async open(bench) {
    return [ourSide(bench, await passwordSignIns(bench.service.url)), await hashSide(bench, HASH, 'verify')]
  },
  peers: 'signIn',
}

export const signUp: Scenario = {
  title: 'sign-up',
  unit: 'requests per second',
  target: TARGET,
  async open(bench) {
    return [ourSide(bench, passwordSignUps(bench.service.url)), await hashSide(bench, HASH, 'hash')]
  },
  peers: 'signUp',
}
