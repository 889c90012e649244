/** A value of an option or an argument that is wrong whatever the service holds. The command exits with 2. */
export class WrongUsage extends Error {}
