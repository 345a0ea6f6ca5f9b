import { openFile, openMemory, openSqlite } from '../support/helpers.ts'
import { exerciseStore } from './exercise.ts'

exerciseStore('memory', openMemory)
exerciseStore('SQLite', openSqlite)
exerciseStore('file', openFile)
