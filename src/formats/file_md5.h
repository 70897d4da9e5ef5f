/* A file, held against the MD5 that it should have. */
#ifndef TRESTLE_FORMATS_FILE_MD5_H
#define TRESTLE_FORMATS_FILE_MD5_H

#include "base/status.h"

/* `md5`: in base64, with or without its padding; `who` names its source, for the words. DATA_LOSS
 * if it is another; NOT_FOUND, … Any thread. */
status file_md5_check(const char *path, bytes md5, const char *who);

#endif
