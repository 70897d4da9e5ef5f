#include <good.h>
#include <sanitizer/asan_interface.h>
#include <stray.h>
