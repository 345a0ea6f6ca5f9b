import { openPostgres } from '../postgres.ts'
import { exerciseStore } from './exercise.ts'

exerciseStore('PostgreSQL', openPostgres)
