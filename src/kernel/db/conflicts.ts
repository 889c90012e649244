/** True when an insert or update failed on this unique constraint; translated where the statement is. */
export function isConflict(error: unknown, constraint: string): boolean {
  const { code, constraint: violated } = error as { code?: unknown; constraint?: unknown } // pg's DatabaseError
  return code === '23505' && violated === constraint
}
