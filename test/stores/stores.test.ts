import { openFile, openForgetful, openMemory, openSqlite } from '../support/helpers.ts'
import { exerciseStore } from './exercise.ts'

exerciseStore('memory', openMemory)
exerciseStore('forgetful memory', openForgetful)
exerciseStore('SQLite', openSqlite)
exerciseStore('file', openFile)
