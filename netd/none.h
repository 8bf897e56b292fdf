/*
 * none: the addresses of a network without a way out; workbox-network(7).
 */
#ifndef NETD_NONE_H
#define NETD_NONE_H

#define NONE_ADDR4	"198.19.255.100"
#define NONE_ADDR6	"fd00::100"

#endif
