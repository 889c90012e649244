import { flag, section } from '../setting.ts'

export const docs = section('The API reference.', {
  enabled: flag('Whether /docs and /openapi.json are served.', {
    derived: { says: 'false with NODE_ENV=production, else true', from: ({ production }) => !production },
  }),
})
