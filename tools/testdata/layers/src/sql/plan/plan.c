#include "sql/syntax/lexer.h"
