package localaws

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.yaml.in/yaml/v3"
)

// tableProperties are the properties of AWS::DynamoDB::Table that decide how
// the table behaves.
type tableProperties struct {
	AttributeDefinitions []struct {
		AttributeName string                    `yaml:"AttributeName"`
		AttributeType types.ScalarAttributeType `yaml:"AttributeType"`
	} `yaml:"AttributeDefinitions"`
	KeySchema              keySchema `yaml:"KeySchema"`
	GlobalSecondaryIndexes []struct {
		IndexName  string    `yaml:"IndexName"`
		KeySchema  keySchema `yaml:"KeySchema"`
		Projection struct {
			ProjectionType types.ProjectionType `yaml:"ProjectionType"`
		} `yaml:"Projection"`
	} `yaml:"GlobalSecondaryIndexes"`
	TimeToLiveSpecification struct {
		AttributeName string `yaml:"AttributeName"`
		Enabled       bool   `yaml:"Enabled"`
	} `yaml:"TimeToLiveSpecification"`
	StreamSpecification struct {
		StreamViewType types.StreamViewType `yaml:"StreamViewType"`
	} `yaml:"StreamSpecification"`
}

type keySchema []struct {
	AttributeName string        `yaml:"AttributeName"`
	KeyType       types.KeyType `yaml:"KeyType"`
}

func (schema keySchema) elements() []types.KeySchemaElement {
	var elements []types.KeySchemaElement
	for _, key := range schema {
		elements = append(elements, types.KeySchemaElement{AttributeName: aws.String(key.AttributeName), KeyType: key.KeyType})
	}
	return elements
}

// CreateTable creates the Table of template.yaml under the given name, with its
// index, expiry and stream, without a deployment. checkout is the folder of
// template.yaml; empty means found from the working directory.
func CreateTable(ctx context.Context, cfg aws.Config, checkout, name string) error {
	checkout, err := FindCheckout(checkout)
	if err != nil {
		return err
	}
	parsed, err := readTemplate(checkout)
	if err != nil {
		return err
	}
	table, err := parsed.table()
	if err != nil {
		return err
	}
	input := &dynamodb.CreateTableInput{
		TableName:   aws.String(name),
		BillingMode: types.BillingModePayPerRequest,
		KeySchema:   table.KeySchema.elements(),
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled:  aws.Bool(true),
			StreamViewType: table.StreamSpecification.StreamViewType,
		},
	}
	for _, attribute := range table.AttributeDefinitions {
		input.AttributeDefinitions = append(input.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(attribute.AttributeName),
			AttributeType: attribute.AttributeType,
		})
	}
	for _, index := range table.GlobalSecondaryIndexes {
		input.GlobalSecondaryIndexes = append(input.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName:  aws.String(index.IndexName),
			KeySchema:  index.KeySchema.elements(),
			Projection: &types.Projection{ProjectionType: index.Projection.ProjectionType},
		})
	}
	client := dynamodb.NewFromConfig(cfg)
	if _, err := client.CreateTable(ctx, input); err != nil {
		return fmt.Errorf("localaws: create table %s: %w", name, err)
	}
	_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String(name),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(table.TimeToLiveSpecification.AttributeName),
			Enabled:       aws.Bool(table.TimeToLiveSpecification.Enabled),
		},
	})
	if err != nil {
		return fmt.Errorf("localaws: create table %s: expiry: %w", name, err)
	}
	return nil
}

// table returns the template's Table in Go's types.
func (t template) table() (tableProperties, error) {
	var table tableProperties
	text, err := yaml.Marshal(t.Resources["Table"].Properties)
	if err != nil {
		return table, fmt.Errorf("localaws: table of the template: %w", err)
	}
	if err := yaml.Unmarshal(text, &table); err != nil {
		return table, fmt.Errorf("localaws: table of the template: %w", err)
	}
	return table, nil
}
