import type { Json } from '../../../packages/client/src/client.ts'

/** A database as `gatehouse types --shape supabase` prints it. */
export type Database = {
  public: {
    Tables: {
      customers: {
        Row: { id: number; name: string; note: string | null; address: Json | null }
        Insert: { id?: number; name: string; note?: string | null; address?: Json | null }
        Update: { id?: number; name?: string; note?: string | null; address?: Json | null }
        Relationships: []
      }
      orders: {
        Row: {
          id: number
          at: string
          total: number | null
          state: Database['public']['Enums']['state']
          tags: string[]
          customer_id: number
          approver_id: number | null
        }
        Insert: {
          id?: number
          at?: string
          total?: number | null
          state?: Database['public']['Enums']['state']
          tags?: string[]
          customer_id: number
          approver_id?: number | null
        }
        Update: {
          id?: number
          at?: string
          total?: number | null
          state?: Database['public']['Enums']['state']
          tags?: string[]
          customer_id?: number
          approver_id?: number | null
        }
        Relationships: [
          {
            foreignKeyName: 'orders_approver_id_fkey'
            columns: ['approver_id']
            isOneToOne: false
            referencedRelation: 'customers'
            referencedColumns: ['id']
          },
          {
            foreignKeyName: 'orders_customer_id_fkey'
            columns: ['customer_id']
            isOneToOne: false
            referencedRelation: 'customers'
            referencedColumns: ['id']
          },
        ]
      }
      lines: {
        Row: { order_id: number; position: number; product: string; 'unit price': number }
        Insert: { order_id: number; position: number; product: string; 'unit price': number }
        Update: { order_id?: number; position?: number; product?: string; 'unit price'?: number }
        Relationships: [
          {
            foreignKeyName: 'lines_order_id_fkey'
            columns: ['order_id']
            isOneToOne: false
            referencedRelation: 'orders'
            referencedColumns: ['id']
          },
        ]
      }
      parts: {
        Row: { id: number; parent_id: number | null }
        Insert: { id: number; parent_id?: number | null }
        Update: { id?: number; parent_id?: number | null }
        Relationships: [
          {
            foreignKeyName: 'parts_parent_id_fkey'
            columns: ['parent_id']
            isOneToOne: false
            referencedRelation: 'parts'
            referencedColumns: ['id']
          },
        ]
      }
      accounts: { Row: { id: number }; Insert: { id: number }; Update: { id?: number }; Relationships: [] }
      entries: {
        Row: { account_id: number }
        Insert: { account_id: number }
        Update: { account_id?: number }
        Relationships: [
          {
            foreignKeyName: 'entries_account_id_fkey'
            columns: ['account_id']
            isOneToOne: false
            referencedRelation: 'accounts'
            referencedColumns: ['id']
            mayBeMissing: true
          },
        ]
      }
    }
    Views: {
      totals: { Row: { customer_id: number | null; total: number | null }; Relationships: [] }
    }
    Functions: {
      add: { Args: { a: number; b?: number }; Returns: number }
      now_text: { Args: never; Returns: string }
      large_orders: { Args: { minimum: number }; Returns: { id: number; total: number | null }[] }
      halves: { Args: { n: number }; Returns: { half: number; rest: number } }
      tick: { Args: Record<PropertyKey, never>; Returns: undefined }
    }
    Enums: { state: 'new' | 'paid' | 'sent' }
    CompositeTypes: { [_ in never]: never }
  }
  shop: {
    Tables: {
      items: { Row: { sku: string }; Insert: { sku: string }; Update: { sku?: string }; Relationships: [] }
    }
    Views: { [_ in never]: never }
    Functions: { [_ in never]: never }
    Enums: { [_ in never]: never }
    CompositeTypes: { [_ in never]: never }
  }
}
