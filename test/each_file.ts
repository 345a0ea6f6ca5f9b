import { afterAll } from 'vitest'
import { removeTemporaryFolders } from './support/memory_folder.ts'

// Here and not beside the folders: files that share a process load their modules once.
afterAll(removeTemporaryFolders)
