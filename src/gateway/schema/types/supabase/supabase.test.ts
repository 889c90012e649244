import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { TYPED_TABLES } from '#test/typed-tables.ts'

const t = await testService()
const reader = await t.key(['management.read', 'management.functions.read'])
const typesOf = async (query: string) => {
  const { status, text, headers } = await reader.get(`/schema/types?${query}`)
  assert.equal(status, 200, text)
  assert.equal(headers.get('content-type'), 'text/plain; charset=utf-8')
  return text
}

before(() => withClient(t.clientUrl, (client) => client.query(TYPED_TABLES)))

test("the shape supabase has what Supabase's clients read", async () => {
  const text = await typesOf('shape=supabase')
  const database = text.slice(text.indexOf('export type Database'), text.indexOf('\n}\n') + 3)
  assert.equal(database, SUPABASE)
  assert.equal(await typesOf('shape=supabase'), text)
  assert.match(text, /^export type Json = .*\n\nexport type Database = \{\n/)
  for (const helper of ['Tables', 'TablesInsert', 'TablesUpdate', 'Enums', 'CompositeTypes'])
    assert.ok(text.includes(`\nexport type ${helper}<\n`), helper)
  assert.ok(text.endsWith(CONSTANTS))
})

const SUPABASE = `export type Database = {
  public: {
    Tables: {
      author: {
        Row: {
          id: number
          name: string
          mail: string | null
          felt: Database["public"]["Enums"]["mood"]
          at: string
        }
        Insert: {
          id?: never
          name: string
          mail?: string | null
          felt?: Database["public"]["Enums"]["mood"]
          at?: string
        }
        Update: {
          id?: never
          name?: string
          mail?: string | null
          felt?: Database["public"]["Enums"]["mood"]
          at?: string
        }
        Relationships: []
      }
      book: {
        Row: {
          id: number
          author_id: number
          price: number | null
          tags: string[] | null
          feels: Database["public"]["Enums"]["mood"][] | null
          places: Database["public"]["CompositeTypes"]["place"][] | null
          facts: Json
          twice: number | null
        }
        Insert: {
          id?: number
          author_id: number
          price?: number | null
          tags?: string[] | null
          feels?: Database["public"]["Enums"]["mood"][] | null
          places?: Database["public"]["CompositeTypes"]["place"][] | null
          facts: Json
          twice?: never
        }
        Update: {
          id?: number
          author_id?: number
          price?: number | null
          tags?: string[] | null
          feels?: Database["public"]["Enums"]["mood"][] | null
          places?: Database["public"]["CompositeTypes"]["place"][] | null
          facts?: Json
          twice?: never
        }
        Relationships: [
          {
            foreignKeyName: "book_author_id_fkey"
            columns: ["author_id"]
            isOneToOne: false
            referencedRelation: "author"
            referencedColumns: ["id"]
          },
        ]
      }
      cover: {
        Row: {
          book_id: number
          image: string | null
        }
        Insert: {
          book_id: number
          image?: string | null
        }
        Update: {
          book_id?: number
          image?: string | null
        }
        Relationships: [
          {
            foreignKeyName: "cover_book_id_fkey"
            columns: ["book_id"]
            isOneToOne: true
            referencedRelation: "book"
            referencedColumns: ["id"]
          },
        ]
      }
    }
    Views: {
      counted: {
        Row: {
          n: number | null
        }
        Relationships: []
      }
      names: {
        Row: {
          id: number | null
          name: string | null
          loud: string | null
        }
        Insert: {
          id?: number | null
          name?: string | null
          loud?: never
        }
        Update: {
          id?: number | null
          name?: string | null
          loud?: never
        }
        Relationships: []
      }
    }
    Functions: {
      add: {
        Args: {
          a: number
          b: number
        }
        Returns: number
      } | {
        Args: {
          a: string
          b: string
        }
        Returns: string
      }
      books_of: {
        Args: {
          author: number
          at_most?: number
        }
        Returns: Database["public"]["Tables"]["book"]["Row"][]
        SetofOptions: { from: "*"; to: "book"; isOneToOne: false; isSetofReturn: true }
      }
      pairs: {
        Args: {
          of: string[]
        }
        Returns: {
          n: number
          felt: Database["public"]["Enums"]["mood"]
        }[]
      }
      shout: {
        Args: never
        Returns: undefined
      }
    }
    Enums: {
      mood: "a \\"good\\" one" | "b's"
    }
    CompositeTypes: {
      place: {
        x: number | null
        moods: Database["public"]["Enums"]["mood"][] | null
      }
    }
  }
  sales: {
    Tables: {
      __proto__: {
        Row: {
          id: number | null
          parent: number | null
          "a-b": string | null
        }
        Insert: {
          id?: number | null
          parent?: number | null
          "a-b"?: string | null
        }
        Update: {
          id?: number | null
          parent?: number | null
          "a-b"?: string | null
        }
        Relationships: []
      }
    }
    Views: { [_ in never]: never }
    Functions: { [_ in never]: never }
    Enums: { [_ in never]: never }
    CompositeTypes: { [_ in never]: never }
  }
}
`

const CONSTANTS = `
export const Constants = {
  public: {
    Enums: {
      mood: ["a \\"good\\" one", "b's"],
    },
  },
  sales: {
    Enums: {},
  },
} as const
`
