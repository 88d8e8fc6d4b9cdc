package workflows

const MaxUsages = maxUsages
