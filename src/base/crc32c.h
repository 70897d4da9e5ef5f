/* CRC32C (Castagnoli): the checksum of backups' manifests, of the store's records, of Datastore's
 * exports and of the batches of SQL results. Polynomial 0x1EDC6F41, reflected, all ones before and
 * after: RFC 3720, appendix B.4. Any thread. */
#ifndef TRESTLE_BASE_CRC32C_H
#define TRESTLE_BASE_CRC32C_H

#include "base/bytes.h"

#ifdef __cplusplus
extern "C" {
#endif

uint32_t crc32c_of(bytes b);

/* The same without the processor's instruction, as where there is none: for its test. */
uint32_t crc32c_by_table(bytes b);

#ifdef __cplusplus
}
#endif

#endif
