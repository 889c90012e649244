/**
 * Every sentence of every page, with `{name}` as the placeholder of a value. A translation is another table like this one.
 */
export const TEXTS = {
  verifyTitle: 'Confirm your email address',
  verifySays: 'The button confirms that {email} is your address.',
  verifyButton: 'Confirm address',
  verifyDone: 'Address confirmed',
  verifyDoneSays: '{email} is confirmed. You can close this page.',

  proveSays:
    'There is an account with the address {email}. Enter its password, and the account stays as it is.',
  chooseInstead: 'I do not know the password',
  chooseSays:
    'Then another person may have opened the account with your address. Choose a new password: the old one stops working, and every session and every other way to sign in is removed.',
  chooseFirstSays: 'The button confirms that {email} is your address. Choose a password for your account.',
  chooseButton: 'Set password and confirm address',

  changeTitle: 'Change your email address',
  changeOldSays:
    'The address of your account is about to change from {email} to {newEmail}. The button allows that.',
  changeOldNext: 'A link is then sent to {newEmail}. The address changes when that link is confirmed.',
  changeOldButton: 'Allow the change',
  changeOldDone: 'One more step',
  changeOldDoneSays: 'A link is on its way to {newEmail}. The address changes when you confirm it there.',
  changeNewSays: 'The button changes the address of your account to {newEmail}.',
  changeNewButton: 'Change address',
  changeProveSays:
    'An account is about to change its address to {newEmail}. Enter its password, and the account stays as it is.',
  changeChooseSays:
    'Then another person may have given your address to an account. Choose a new password and the account is yours: the old one stops working, and every session and every other way to sign in is removed.',
  changeChooseFirstSays:
    'The button changes the address of your account to {newEmail}. Choose a password for your account.',
  changeChooseButton: 'Set password and change address',
  changeNewDone: 'Address changed',
  changeNewDoneSays: 'The address of your account is now {newEmail}. You can close this page.',

  deleteTitle: 'Delete your account',
  deleteSays: 'The button deletes the account of {email}, with everything in it. This cannot be undone.',
  deletePasswordSays: 'You are not signed in here. Enter the password of the account to delete it.',
  deleteSignInSays: 'Sign in to this account in this browser, then open the link again.',
  deleteButton: 'Delete account',
  deleteDone: 'Account deleted',
  deleteDoneSays: 'The account of {email} and everything in it is deleted.',

  resetTitle: 'Choose a new password',
  resetSays: 'The button sets a new password for the account of {email} and signs it out everywhere.',
  resetButton: 'Set password',
  resetDone: 'Password changed',
  resetDoneSays: 'The account of {email} has its new password. Sign in with it.',

  password: 'Password',
  newPassword: 'New password',

  badLinkTitle: 'This link does not work',
  badLinkSays: 'It was used before, is incomplete, or was replaced by a newer one.',
  expiredTitle: 'This link has expired',
  expiredSays: 'Links work for a limited time.',
  askAgainVerify:
    'Ask for a new link in the application. If your address is confirmed already, there is nothing to do.',
  askAgainChange: 'Ask for the change again in the settings of your account.',
  askAgainDelete:
    'Ask for the deletion again in the settings of your account. If the account is deleted already, there is nothing to do.',
  askAgainReset: 'Ask for a new link where you sign in.',
  goOn: 'Go on to the application',

  failedTitle: 'Something went wrong',
  failedSays: 'Go back and try again. If it fails again, tell the operator of this service.',
} as const

export type TextName = keyof typeof TEXTS

/** The sentence with its values. Values are text, never HTML. */
export const say = (name: TextName, values: Readonly<Record<string, string>> = {}): string =>
  TEXTS[name].replace(/\{(\w{1,40})\}/g, (whole, value: string) => values[value] ?? whole)
