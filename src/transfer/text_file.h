/* A small file of text that is replaced as a whole: positions and the like. */
#ifndef TRESTLE_TRANSFER_TEXT_FILE_H
#define TRESTLE_TRANSFER_TEXT_FILE_H

#include "base/status.h"

/* Durable when it returns: whoever reads it later finds this text or a later one. */
status text_file_replace(const char *path, const char *text);

#endif
