/* A directory that has, byte for byte, the files of a checkpoint (store.h), and that has not been
 * opened yet: each of them was held against its digest. */
#ifndef TRESTLE_STORE_COPIED_H
#define TRESTLE_STORE_COPIED_H

#ifdef __cplusplus
extern "C" {
#endif

#include "base/status.h"

/* Puts right what former programs' checkpoints had wrong: SYNCED could say that more of the
 * manifest was synced than RocksDB listed, and the checkpoint has. So it is no damage if the
 * manifest ends with a whole record. Nothing of others; what is damaged is left for the opening to
 * tell. */
status store_correct_copy(const char *directory);

#ifdef __cplusplus
}
#endif

#endif
