/*
 * openapi: the document that describes the API, made from routes.def,
 * schemas.json and proto.def.
 */
#ifndef APID_OPENAPI_H
#define APID_OPENAPI_H

#include <jansson.h>

/* A new reference; fatal without memory. */
json_t	*openapi_document(void);

#endif
