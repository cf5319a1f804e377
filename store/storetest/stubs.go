package storetest

var outboxTests, usageTests, userTests, scheduleTests, chatLogTests, lifeTests, engineTests, caseTests, modelTests []test
