/** One line of `gatehouse doctor`. */
export type Finding = { readonly subject: string; readonly ok: boolean; readonly says: string }
