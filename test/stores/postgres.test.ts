import { afterAll } from 'vitest'
import { EmptiedPostgres } from '../support/postgres.ts'
import { exerciseStore } from './exercise.ts'

const emptied = new EmptiedPostgres()
afterAll(() => emptied.close())

exerciseStore('PostgreSQL', emptied.open, () => emptied.clear())
