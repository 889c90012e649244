import { flag, section } from '../setting.ts'

export const consoleSettings = section('The console: the service in a browser, for those who operate it.', {
  enabled: flag('Whether /console is served, which GET / leads browsers to.', {
    derived: { says: 'false with NODE_ENV=production, else true', from: ({ production }) => !production },
  }),
})
