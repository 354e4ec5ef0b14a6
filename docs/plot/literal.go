package main

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"reflect"
	"time"

	"authguard/limiter"
)

var laws = []limiter.Limit{
	limiter.TokenBucket{}, limiter.LeakyBucket{}, limiter.FixedWindow{}, limiter.SlidingWindow{},
	limiter.SlidingWindowCounter{}, limiter.Backoff{}, limiter.Distinct{},
}

// parseLimit reads a limit as it is written in Go:
//
//	limiter.TokenBucket{Capacity: 5, Refill: 1, Per: 2 * time.Second}
func parseLimit(source string) (limiter.Limit, bool) {
	expr, err := parser.ParseExpr(source)
	literal, ok := expr.(*ast.CompositeLit)
	if err != nil || !ok {
		return nil, false
	}
	name, ok := literal.Type.(*ast.SelectorExpr)
	if !ok {
		return nil, false
	}
	for _, law := range laws {
		if reflect.TypeOf(law).Name() != name.Sel.Name {
			continue
		}
		v := reflect.New(reflect.TypeOf(law)).Elem()
		for _, e := range literal.Elts {
			field, ok := e.(*ast.KeyValueExpr)
			if !ok {
				return nil, false
			}
			key, ok := field.Key.(*ast.Ident)
			if !ok || !v.FieldByName(key.Name).IsValid() {
				return nil, false
			}
			n, exact := constant.Int64Val(value(field.Value))
			if !exact {
				return nil, false
			}
			v.FieldByName(key.Name).SetInt(n)
		}
		limit := v.Interface().(limiter.Limit)
		return limit, limit.Validate() == nil
	}
	return nil, false
}

var units = map[string]time.Duration{
	"Microsecond": time.Microsecond, "Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
}

// value is a whole number, a unit of package time, or a product of such.
func value(e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.ToInt(constant.MakeFromLiteral(e.Value, e.Kind, 0))
	case *ast.SelectorExpr:
		return constant.MakeInt64(int64(units[e.Sel.Name]))
	case *ast.BinaryExpr:
		if e.Op == token.MUL {
			return constant.BinaryOp(value(e.X), token.MUL, value(e.Y))
		}
	}
	return constant.MakeUnknown()
}
