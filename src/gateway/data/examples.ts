const ADA = { title: 'Notes on the Analytical Engine', author: 'Ada Lovelace', pages: 66 }
const IS_BY_ADA = [{ eq_column: 'author', eq_value: 'Ada Lovelace' }]
/** Examples for the quick start's table, like the README's commands. */
export const EXAMPLES = {
  insert: [
    {
      table_name: 'books',
      insert_body: [
        ADA,
        { title: 'The Art of Computer Programming', author: 'Donald Knuth', pages: 3_168 },
        { title: 'Untitled' },
      ],
    },
  ],
  fetch: [
    {
      table_name: 'books',
      columns: ['title', 'pages'],
      conditions: [{ operator: 'gt', column: 'pages', value: 50 }],
      sort_by: { field: 'pages', direction: 'desc' },
      current_page: 1,
      page_size: 10,
      count: 'exact',
    },
    { table_name: 'books', conditions: IS_BY_ADA },
    {
      table_name: 'books',
      conditions: [
        {
          or: [
            { column: 'pages', operator: 'lt', value: 100 },
            { column: 'pages', value: null },
          ],
        },
      ],
    },
    { table_name: 'books', conditions: [{ operator: 'not', value: 'pages.gt.50,author.is.null' }] },
    {
      table_name: 'books',
      group_by: 'author',
      aggregation_column: 'pages',
      aggregation_strategy: 'cumulative_sum',
    },
  ],
  count: [{ table_name: 'books', conditions: IS_BY_ADA }],
  update: [{ table_name: 'books', update_body: { pages: 67 }, conditions: IS_BY_ADA }],
  delete: [{ table_name: 'books', conditions: [{ eq_column: 'title', eq_value: 'Untitled' }] }],
  transaction: [
    {
      operations: [
        { id: 'add', kind: 'insert', payload: { table_name: 'books', insert_body: { title: 'Sketches' } } },
        { id: 'look', kind: 'fetch', payload: { table_name: 'books', limit: 10 } },
      ],
    },
  ],
} as const
