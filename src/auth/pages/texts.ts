/**
 * Every text of the pages that mailed links open. `{name}` is a placeholder. The prefix is the page or its step: `changeOld` and `changeNew`
 * are the links to the old and the new address. `…Text` is a paragraph, `…Done` the title once the button was pressed.
 */
const TEXTS = {
  verifyTitle: 'Confirm your email address',
  verifyText: 'The button confirms that {email} is your address.',
  verifyButton: 'Confirm address',
  verifyDone: 'Address confirmed',
  verifyDoneText: '{email} is confirmed. You can close this page.',

  // The first proof of an address (auth/email/first-proof.ts): `prove` asks for the password, `choose` offers a new one.
  proveText:
    'There is an account with the address {email}. Enter its password, and the account stays as it is.',
  chooseInstead: 'I do not know the password',
  chooseText:
    'Then another person may have opened the account with your address. Choose a new password: the old one stops working, and every session and every other way to sign in is removed.',
  chooseFirstText: 'The button confirms that {email} is your address. Choose a password for your account.',
  chooseButton: 'Set password and confirm address',

  changeTitle: 'Change your email address',
  changeOldText:
    'The address of your account is about to change from {email} to {newEmail}. The button allows this change.',
  changeOldNext: 'A link is then sent to {newEmail}. The address changes when that link is confirmed.',
  changeOldButton: 'Allow the change',
  changeOldDone: 'One more step',
  changeOldDoneText: 'A link is on its way to {newEmail}. The address changes when you confirm it there.',
  changeNewText: 'The button changes the address of your account to {newEmail}.',
  changeNewButton: 'Change address',
  changeProveText:
    'An account is about to change its address to {newEmail}. Enter its password, and the account stays as it is.',
  changeChooseText:
    'Then another person may have given your address to an account. Choose a new password and the account is yours: the old one stops working, and every session and every other way to sign in is removed.',
  changeChooseFirstText:
    'The button changes the address of your account to {newEmail}. Choose a password for your account.',
  changeChooseButton: 'Set password and change address',
  changeNewDone: 'Address changed',
  changeNewDoneText: 'The address of your account is now {newEmail}. You can close this page.',

  deleteTitle: 'Delete your account',
  deleteText: 'The button deletes the account of {email}, with everything in it. This cannot be undone.',
  deletePasswordText: 'You are not signed in here. Enter the password of the account to delete it.',
  deleteSignInText: 'Sign in to this account in this browser, then open the link again.',
  deleteButton: 'Delete account',
  deleteDone: 'Account deleted',
  deleteDoneText: 'The account of {email} and everything in it is deleted.',

  resetTitle: 'Choose a new password',
  resetText: 'The button sets a new password for the account of {email} and signs it out everywhere.',
  resetButton: 'Set password',
  resetDone: 'Password changed',
  resetDoneText: 'The account of {email} has its new password. Sign in with it.',

  signInTitle: 'Sign in',
  signInText: 'The button signs you in as {email}.',
  signInButton: 'Sign in',
  signInFirstText:
    'The button confirms that {email} is your address and signs you in. Until now another person may have used the account with your address: every session and every other way to sign in is removed, and its password has to be changed before it works again.',
  signInNewText: 'There is no account with the address {email}. The button opens one and signs you in.',
  signInNewButton: 'Open an account',
  signInDone: 'Signed in',
  signInDoneText: 'You are signed in as {email}. You can close this page.',
  askAgainSignIn: 'Ask for a new link where you sign in.',

  invitationTitle: 'Join an organization',
  invitationText: '{inviter} invites {email} to {organization}. The button accepts, with the role {role}.',
  someone: 'Someone',
  invitationButton: 'Accept invitation',
  invitationDone: 'Invitation accepted',
  invitationDoneText: '{email} is now a member of {organization}. You can close this page.',
  invitationSignInText:
    'Sign in to the application in this browser, or sign up, with the address that the invitation was sent to. Then open the link again.',
  invitationGoneText:
    'If you are signed in with this address, it has to be confirmed first, or the invitation was answered or canceled, or has expired.',

  deviceTitle: 'Sign in on a device',
  deviceEnterText: 'Enter the code that the device shows.',
  deviceCode: 'Code',
  deviceEnterButton: 'Continue',
  deviceText: '{client} asks to be signed in to the account of {email}. It has to show this code:',
  deviceWarning:
    'Approve only if you have just begun this yourself, on a device that is with you. It can then do what you can do, until it is signed out.',
  deviceApproveButton: 'Approve',
  deviceDenyButton: 'Refuse',
  deviceApproved: 'Device approved',
  deviceApprovedText: 'It is signed in within seconds. You can close this page.',
  deviceDenied: 'Device refused',
  deviceDeniedText: 'It gets no access to your account. You can close this page.',
  deviceSignInText:
    'Sign in to the application in this browser, with a second factor if your account needs one. Then open this page again.',
  deviceSignInAgainText:
    'You signed in some time ago. Sign in to the application again, then open this page again.',

  password: 'Password',
  newPassword: 'New password',

  badLinkTitle: 'This link does not work',
  badLinkText: 'It was used before, is incomplete, or was replaced by a newer one.',
  expiredTitle: 'This link has expired',
  expiredText: 'Links work for a limited time.',
  askAgainVerify:
    'Ask for a new link in the application. If your address is confirmed already, there is nothing to do.',
  askAgainChange: 'Ask for the change again in the settings of your account.',
  askAgainDelete:
    'Ask for the deletion again in the settings of your account. If the account is deleted already, there is nothing to do.',
  askAgainReset: 'Ask for a new link where you sign in.',
  continueToApplication: 'Go on to the application',

  failedTitle: 'Something went wrong',
  failedText: 'Go back and try again. If it fails again, tell the operator of this service.',
} as const

export type TextName = keyof typeof TEXTS

/** The text with its placeholders replaced by `values`, which are text, never HTML. An unknown placeholder stays. */
export const pageText = (textName: TextName, values: Readonly<Record<string, string>> = {}): string =>
  TEXTS[textName].replace(/\{(\w{1,40})\}/g, (placeholder, name: string) => values[name] ?? placeholder)
