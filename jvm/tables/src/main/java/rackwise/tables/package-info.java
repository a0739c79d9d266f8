/** The log of Delta tables in an object store; Spark loads it, brokers do not. */
package rackwise.tables;
